// Terminals as the SDK asks for them, for callers within this program: the server's own MCP, and `mcp --embed`.

import type { TerminalApi } from '../../client/terminal-api.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { recordingFormats, recordTerminal } from './recording.ts';
import { textSnapshot } from './snapshot-shape.ts';
import { paint, withOutput, type TerminalCallOptions } from './terminal-calls.ts';
import type { TerminalSession } from './terminal-session.ts';

export function nearTerminals(options: TerminalCallOptions, owner: Owner): TerminalApi {
  const { host, terminals, clock, shell } = options;
  const session = (id: string): Promise<TerminalSession> => terminals.open(owner, id);
  return {
    open: async ({ argv = [shell], marks = true, ...spec }) => {
      const started = await host.start(owner, { ...spec, argv, marks, streams: 'pty' });
      await terminals.of(started.process);
      return started;
    },
    run: async ({ id, ...params }, signal) => {
      const opened = await session(id);
      return withOutput(opened, await opened.run(params, signal));
    },
    input: async (id, { text = '', base64, paste, keys, writeId }) => {
      const opened = await session(id);
      if (paste !== undefined) return opened.paste(paste, writeId);
      if (keys !== undefined) return opened.keys(keys, writeId);
      return opened.type(base64 === undefined ? text : Buffer.from(base64, 'base64'), writeId);
    },
    mark: (params) => host.mark(owner, params),
    waitForScreen: async (id, { timeoutMs, afterSeq, ...condition }, signal) => {
      const { snapshot, ...waited } = await (
        await session(id)
      ).wait(condition, {
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(afterSeq !== undefined && { afterSeq }),
        ...(signal && { signal }),
      });
      return { ...waited, snapshot: textSnapshot(id, snapshot) };
    },
    snapshot: async (id, query) => textSnapshot(id, await (await session(id)).snapshot(query)),
    screenshot: async (id, { format = 'png', at, ...look }) => {
      const shot = await (await session(id)).snapshot({ ...(at !== undefined && { at }) });
      const [, bytes] = await paint(format, shot, look, () => terminals.pictures());
      return bytes;
    },
    recording: async (id, { format: asked = 'asciicast', ...request }) => {
      const format = recordingFormats.find((each) => each === asked);
      if (!format) throw new HoldfastError('invalid_input', `There is no format "${asked}".`);
      return (await recordTerminal(await session(id), { format, ...request }, clock)).bytes;
    },
    close: async (id) => {
      const process = await host.get(owner, { id });
      const removed = await host.remove(process.owner, { id, force: true });
      await terminals.forget(process);
      return removed;
    },
  };
}
