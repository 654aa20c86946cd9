// What needs a person: programs that ask, that wait for input, and that are silent; over every host.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Need } from '../../src/protocol/dashboard/attention.ts';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { describeHosts, OWNER, startProcess, waitFor } from '../support/hosts.ts';

async function terminal(host: HostApi, script: string, name?: string): Promise<string> {
  const argv = ['/bin/sh', '-c', script];
  const named = name === undefined ? {} : { name };
  return startProcess(host, { argv, streams: 'pty', stdin: 'pipe', ...named });
}

/** Asks until the answer is as wanted: what the kernel says of a program changes without a word. */
async function needs(
  host: HostApi,
  isWanted: (found: readonly Need[]) => boolean,
): Promise<readonly Need[]> {
  for (;;) {
    const found = (await host.attention(OWNER, {})).needs;
    if (isWanted(found)) return found;
    await nextTurn();
  }
}

const isOne = (found: readonly Need[]): boolean => found.length === 1;
const isNone = (found: readonly Need[]): boolean => found.length === 0;

describeHosts((make) => {
  it('[DB19] a program that rings the bell or sends a notice asks, until somebody types or has looked', async () => {
    const host = await make();
    const script =
      'stty -echo; printf "ready\\n\\007"; read a; printf "\\033]9;built it\\007"; exec sleep 1000';
    const id = await terminal(host, script, 'asks');
    await waitFor(host, id, { kind: 'text', text: 'ready' });
    // The bell may be read after the text before it: until then the program only waits for input.
    const [bell] = await needs(host, (found) => found[0]?.reason === 'asked');
    expect(bell).toMatchObject({ owner: OWNER, id, name: 'asks', reason: 'asked', text: 'ready' });
    await host.write(OWNER, { id, data: Buffer.from('\n') });
    const [notice] = await needs(host, (found) => found[0]?.text === 'built it');
    expect(notice).toMatchObject({ reason: 'asked' });
    expect((await host.attention('somebody-else', {})).needs).toEqual([]);
    await host.dismiss(OWNER, { id });
    expect((await host.attention(OWNER, {})).needs).toEqual([]);
    await host.signal(OWNER, { id, signal: 'SIGKILL' });
  });

  it('[DB19] a program that is blocked in a read of its terminal waits for input; a shell at its prompt does not', async () => {
    const host = await make();
    const shell = await startProcess(host, {
      argv: ['/bin/bash', '--norc', '--noprofile'],
      env: { PS1: 'ready$ ', HOME: '/' },
      streams: 'pty',
      stdin: 'pipe',
    });
    await waitFor(host, shell, { kind: 'text', text: 'ready$' });
    const id = await terminal(host, 'printf "Name? "; read name; exec sleep 1000');
    await waitFor(host, id, { kind: 'text', text: 'Name?' });
    const [need] = await needs(host, isOne);
    expect(need).toMatchObject({ id, reason: 'reads', text: 'Name?' });
    await host.dismiss(OWNER, { id });
    expect((await host.attention(OWNER, {})).needs).toEqual([]);
    await host.write(OWNER, { id, data: Buffer.from('me\n') });
    await needs(host, isNone);
    for (const each of [shell, id]) await host.signal(OWNER, { id: each, signal: 'SIGKILL' });
  });

  it('[DB19] a process is silent when it has printed nothing for the chosen time', async () => {
    const host = await make();
    const id = await startProcess(host, { command: 'echo begun; exec sleep 1000' });
    await waitFor(host, id, { kind: 'text', text: 'begun' });
    await waitFor(host, id, { kind: 'silence', forMs: 20 });
    expect((await host.attention(OWNER, {})).needs).toEqual([]);
    const quiet = await host.attention(OWNER, { quietMs: 10 });
    expect(quiet.needs).toMatchObject([{ id, reason: 'quiet', text: 'begun' }]);
    expect((await host.attention(OWNER, { quietMs: 3_600_000 })).needs).toEqual([]);
    await host.signal(OWNER, { id, signal: 'SIGKILL' });
    await waitFor(host, id, { kind: 'exit' });
    expect((await host.attention(OWNER, { quietMs: 1 })).needs).toEqual([]);
  });
});
