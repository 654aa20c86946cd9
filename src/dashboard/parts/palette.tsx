// The palette: type a few letters to go to a process, ">" for a command, "/" to search all output.

import { useSignal } from '@preact/signals';
import { shownKeys, type Key } from '../core/keyboard.ts';
import { processes } from '../core/processes.ts';
import { go, linkTo } from '../core/route.ts';
import { density, theme } from '../core/settings.ts';
import { parseFilter } from '../model/filter.ts';
import { stateWords } from '../model/state-words.ts';
import { visibleText } from '../model/words.ts';
import { Dialog } from './dialog.tsx';
import { processLink } from './process-list.tsx';

interface Choice {
  readonly key: string;
  readonly title: string;
  readonly about: string;
  readonly run: () => void;
}

const MOST = 12;

/** `here`: the keys of the page below, which are commands too. */
export function Palette({ close, here }: { close: () => void; readonly here: readonly Key[] }) {
  const text = useSignal('');
  const at = useSignal(0);
  const choices = choicesFor(text.value, here);
  const chosen = Math.min(at.value, choices.length - 1);
  const take = (choice: Choice | undefined): void => {
    if (!choice) return;
    close();
    choice.run();
  };
  const press = (event: KeyboardEvent & { readonly currentTarget: HTMLInputElement }): void => {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (by !== 0) at.value = Math.max(0, Math.min(choices.length - 1, chosen + by));
    // Of what stands there now: a quick Enter comes before the choices are drawn.
    if (event.key === 'Enter') take(choicesFor(event.currentTarget.value, here)[at.value]);
    if (by !== 0 || event.key === 'Enter') event.preventDefault();
  };
  return (
    <Dialog title="Go to" close={close}>
      <input
        type="search"
        class="palette"
        autoFocus
        role="combobox"
        aria-expanded={choices.length > 0}
        aria-controls="palette-choices"
        aria-activedescendant={choices.length > 0 ? `palette-${chosen}` : undefined}
        aria-label="Process, > command, / search"
        placeholder="Process, > command, / search all output"
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={press}
      />
      <ul class="palette-choices" id="palette-choices" role="listbox" aria-label="Choices">
        {choices.map((choice, index) => (
          <li
            key={choice.key}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => take(choice)}
          >
            <span class="cut">{choice.title}</span>
            <span class="muted">{choice.about}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function choicesFor(text: string, here: readonly Key[]): Choice[] {
  if (text.startsWith('/')) {
    const q = text.slice(1);
    const run = (): void => go(linkTo(['search'], { q }));
    return [{ key: 'search', title: `Search all output for ${q}`, about: 'g s', run }];
  }
  if (text.startsWith('>')) {
    const wanted = text.slice(1).trim().toLowerCase();
    return commands(here).filter(({ title }) => title.toLowerCase().includes(wanted));
  }
  return processes.value
    .filter(parseFilter(text))
    .slice(0, MOST)
    .map((process) => ({
      key: `${process.owner} ${process.id}`,
      title: visibleText(process.name ?? process.command),
      about: `${stateWords(process).word} · ${visibleText(process.owner)}`,
      run: () => go(processLink(process)),
    }));
}

function commands(here: readonly Key[]): Choice[] {
  const pages: [string, string[], string][] = [
    ['Processes', [], 'g p'],
    ['Inbox', ['inbox'], 'g i'],
    ['Wall', ['wall'], 'g w'],
    ['Search', ['search'], 'g s'],
    ['Host', ['host'], 'g h'],
  ];
  const settings: Choice[] = [
    ...(['dark', 'light', 'system'] as const).map((value) => ({
      key: value,
      title: `Colours: ${value}`,
      about: '',
      run: () => void (theme.value = value),
    })),
    ...(['compact', 'comfortable'] as const).map((value) => ({
      key: value,
      title: `Rows: ${value}`,
      about: '',
      run: () => void (density.value = value),
    })),
  ];
  return [
    ...here.map(({ keys, label = '', run }) => ({ key: keys, title: label, about: keys, run })),
    ...pages.map(([title, parts, about]) => ({
      key: title,
      title,
      about,
      run: () => go(linkTo(parts)),
    })),
    ...settings,
  ];
}

/** What the keys do on the page that is shown, without those of the frame. */
export function commandsHere(): Key[] {
  return shownKeys().filter(({ keys }) => keys !== 'Ctrl+k' && keys !== '?');
}
