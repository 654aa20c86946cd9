// `holdfast kill`

import { constants } from 'node:os';
import type { Command } from '../arguments/command.ts';
import { nearest } from '../arguments/nearest.ts';
import { forEachNamed } from '../for-each.ts';
import { leftWords } from '../output/signal-words.ts';
import { quote } from '../output/terminal-text.ts';
import { plural } from '../arguments/units.ts';
import type { Words } from '../arguments/words.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'kill',
  usage: '[-SIGNAL] ID... [--signal SIGNAL]',
  summary: summaries.kill,
  examples: ['holdfast kill web --signal HUP', 'holdfast kill -9 web'],
  takes: 'processes',
  options: {
    signal: {
      type: 'string',
      short: 's',
      value: 'SIGNAL',
      completes: 'signal',
      about: 'INT, SIGUSR1, 9, … (default TERM); -9 and -KILL are the same as --signal=KILL',
    },
  },
  notes: [
    'Waits for the exit only after KILL. Use "stop" to end a process and everything it started.',
  ],
  spelling: dashedSignal,
  read({ words, caller }) {
    const ids = words.expect('ID...');
    const signal = signalName(words.text('signal') ?? 'TERM', words);
    return () =>
      forEachNamed(ids, async (text) => {
        const { id, owner } = await caller.find(text);
        const host = await caller.host();
        const result = await host.signal(owner, { id, signal, by: caller.name });
        const sent = `${quote(signal)} sent to ${plural(result.signalled.length, 'process', 'processes')}`;
        const left = leftWords(result);
        return {
          result: { id, ...result },
          line: `${id}  ${left === '' ? sent : `${sent}; ${left}`}`,
          exitCode: left === '' ? 0 : 1,
        };
      });
  },
};

const numbers: Readonly<Record<string, number>> = constants.signals;

/** "-9" and "-KILL", as kill(1) takes them; letters in capitals, so that no option is taken for one. */
function dashedSignal(args: readonly string[]): string[] {
  const end = args.indexOf('--');
  return args.map((word, at) => {
    const [, signal] = /^-(\d{1,2}|[A-Z][A-Z0-9]{2,})$/.exec(word) ?? [];
    return signal === undefined || (end >= 0 && at > end) ? word : `--signal=${signal}`;
  });
}

/** With or without SIG, in any case, or by its number here. */
function signalName(text: string, words: Words): string {
  const name = /^\d+$/.test(text)
    ? Object.keys(numbers).find((each) => numbers[each] === Number(text))
    : `SIG${text.toUpperCase().replace(/^SIG/, '')}`;
  if (name !== undefined && Object.hasOwn(numbers, name)) return name;
  const near = nearest(name ?? '', Object.keys(numbers));
  throw words.wrong(
    `"${text}" is not a signal${near === undefined ? '' : `; did you mean ${near}`}`,
  );
}
