// Typing into a terminal without a keyboard: a field for text, and the keys that a phone does not have.

import { useRef } from 'preact/hooks';
import type { Screen } from './screen.ts';

const KEYS: readonly [string, string][] = [
  ['Enter', '\r'],
  ['y', 'y'],
  ['n', 'n'],
  ['Esc', '\x1b'],
  ['Tab', '\t'],
  ['Ctrl+C', '\x03'],
  ['Ctrl+D', '\x04'],
];
const ARROWS = [
  ['←', 'D', 'Left'],
  ['↑', 'A', 'Up'],
  ['↓', 'B', 'Down'],
  ['→', 'C', 'Right'],
] as const;

export function KeyBar({ screen }: { readonly screen: Screen }) {
  const field = useRef<HTMLInputElement>(null);
  const send = (event: Event): void => {
    event.preventDefault();
    screen.type(`${field.current?.value ?? ''}\r`);
    if (field.current) field.current.value = '';
  };
  return (
    <div class="key-bar">
      <form onSubmit={send}>
        <input
          ref={field}
          type="text"
          aria-label="Text to type"
          placeholder="Type here, then Send"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          enterkeyhint="send"
        />
        <button type="submit">Send</button>
      </form>
      <div class="key-row" role="group" aria-label="Keys">
        {KEYS.map(([name, data]) => (
          <button key={name} type="button" onClick={() => screen.type(data)}>
            {name}
          </button>
        ))}
        {ARROWS.map(([name, final, title]) => (
          <button key={name} type="button" aria-label={title} onClick={() => screen.arrow(final)}>
            {name}
          </button>
        ))}
      </div>
    </div>
  );
}
