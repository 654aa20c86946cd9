// What a person has chosen about how the page looks. Kept in this browser.

import { effect, signal, type Signal } from '@preact/signals';

export const theme = kept('theme', ['system', 'dark', 'light'] as const);
export const density = kept('density', ['compact', 'comfortable'] as const);
export const quietAfter = kept('quietAfter', ['off', '1 m', '5 m', '30 m'] as const);
export const notifies = kept('notifies', ['off', 'on'] as const);
export const letterKeys = kept('letterKeys', ['on', 'off'] as const);

/** The first is the default. */
function kept<T extends string>(name: string, values: readonly [T, ...T[]]): Signal<T> {
  const key = `holdfast.${name}`;
  const stored = localStorage.getItem(key);
  const chosen = signal(values.find((value) => value === stored) ?? values[0]);
  effect(() => {
    if (chosen.value === values[0]) localStorage.removeItem(key);
    else localStorage.setItem(key, chosen.value);
  });
  return chosen;
}

const prefersDark = matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(prefersDark.matches);
prefersDark.addEventListener('change', ({ matches }) => {
  systemIsDark.value = matches;
});

export function isDark(): boolean {
  return theme.value === 'system' ? systemIsDark.value : theme.value === 'dark';
}

effect(() => {
  document.documentElement.dataset['theme'] = isDark() ? 'dark' : 'light';
  document.documentElement.dataset['density'] = density.value;
});
