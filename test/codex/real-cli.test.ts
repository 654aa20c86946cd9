// The published codex command line, unmodified, with a scripted model on loopback, through our exec-server. Only with
// CODEX_CLI, which `npm run test:codex` sets.

import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ExecServer } from '../support/exec-server.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';
import { codexCli, runCodex } from '../support/real-codex.ts';
import type { ScriptedTurn } from '../support/scripted-model.ts';

const TIMEOUT_MS = 60_000;

describe.skipIf(codexCli === undefined)('the real codex client', () => {
  it(
    '[CX27] runs one command and gets its output and exit code',
    async () => {
      const { outputs } = await session([
        { tool: 'exec_command', args: { cmd: 'echo total-$((40+2)); echo oops >&2; exit 3' } },
      ]);
      expect(outputs[0]).toContain('Process exited with code 3');
      expect(outputs[0]).toContain('total-42\n');
      expect(outputs[0]).toContain('oops\n');
    },
    TIMEOUT_MS,
  );

  it(
    '[CX27] types into a terminal',
    async () => {
      const { outputs } = await session([
        {
          tool: 'exec_command',
          args: {
            cmd: 'stty size; read -p "name? " name; echo "hello $name"',
            tty: true,
            yield_time_ms: 500,
          },
        },
        ({ input }) => {
          const said = JSON.stringify(input);
          const id = /session ID (\d+)/.exec(said)?.[1];
          return {
            tool: 'write_stdin',
            args: { session_id: Number(id), chars: 'Ada\n', yield_time_ms: 3000 },
          };
        },
      ]);
      expect(outputs[0]).toContain('24 80');
      expect(outputs[0]).toContain('name?');
      expect(outputs[1]).toContain('hello Ada');
      expect(outputs[1]).toContain('Process exited with code 0');
    },
    TIMEOUT_MS,
  );

  it(
    '[CX27] patches a file',
    async () => {
      const patch = [
        '*** Begin Patch',
        '*** Update File: poem.txt',
        '@@',
        '-roses are blue',
        '+roses are red',
        '*** Add File: more/new.txt',
        '+violets',
        '*** End Patch',
      ].join('\n');
      const { folder, outputs } = await session(
        [{ tool: 'exec_command', args: { cmd: `apply_patch <<'EOF'\n${patch}\nEOF\n` } }],
        { prepare: (into) => writeFileSync(join(into, 'poem.txt'), 'roses are blue\n') },
      );
      expect(outputs[0]).toContain('Success');
      expect(readFileSync(join(folder, 'poem.txt'), 'utf8')).toBe('roses are red\n');
      expect(readFileSync(join(folder, 'more/new.txt'), 'utf8')).toBe('violets\n');
    },
    TIMEOUT_MS,
  );

  it(
    '[CX28] goes on after its connection was cut in the middle of a command',
    async () => {
      const { outputs } = await session(
        [{ tool: 'exec_command', args: { cmd: lines, yield_time_ms: 30_000 } }],
        {
          meanwhile: async ({ folder, proxy }) => {
            await appears(join(folder, 'half'));
            proxy.cut();
            writeFileSync(join(folder, 'go'), '');
          },
        },
      );
      expect(outputs[0]).toContain('Process exited with code 0');
      expect(numbers(outputs[0])).toEqual(expected);
    },
    TIMEOUT_MS,
  );

  it(
    '[CX28] gets the whole result although the server was killed in the middle and started again',
    async () => {
      const { outputs } = await session(
        [{ tool: 'exec_command', args: { cmd: lines, yield_time_ms: 30_000 } }],
        {
          meanwhile: async ({ folder, server }) => {
            await appears(join(folder, 'half'));
            await server.kill();
            // Everything else is printed while there is no server.
            writeFileSync(join(folder, 'go'), '');
            await appears(join(folder, 'done'));
            await server.start();
          },
        },
      );
      expect(outputs[0]).toContain('Process exited with code 0');
      expect(numbers(outputs[0])).toEqual(expected);
    },
    TIMEOUT_MS,
  );
});

/** Prints half, waits for input, prints the rest. */
const lines = [
  'for i in $(seq 1 100); do echo line-$i; done',
  'touch half',
  'until [ -e go ]; do sleep 0.02; done',
  'for i in $(seq 101 200); do echo line-$i; done',
  'touch done',
].join('; ');
const expected = Array.from({ length: 200 }, (_, index) => index + 1);

function numbers(output = ''): number[] {
  return Array.from(output.matchAll(/line-(\d+)/g), ([, number]) => Number(number));
}

interface Stage {
  readonly folder: string;
  readonly server: ExecServer;
  readonly proxy: Proxy;
}

/** One run of `codex exec` through the turns, and what the tools answered. */
async function session(
  turns: readonly ScriptedTurn[],
  {
    prepare,
    meanwhile,
  }: { prepare?: (folder: string) => void; meanwhile?: (stage: Stage) => Promise<void> } = {},
): Promise<{ folder: string; outputs: string[] }> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-real-')));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  prepare?.(folder);
  const server = new ExecServer(temporaryFolder());
  await server.start();
  const proxy = await Proxy.to(server.port);
  const outputs = runCodex(turns, {
    folder,
    env: { CODEX_EXEC_SERVER_URL: proxy.url(server.url) },
  });
  const [answered] = await Promise.all([outputs, meanwhile?.({ folder, server, proxy })]);
  return { folder, outputs: answered };
}

/** Stands between client and server so that a connection can be lost. */
class Proxy {
  private readonly pairs = new Set<readonly [Socket, Socket]>();
  private readonly server = createServer();

  static async to(port: number): Promise<Proxy> {
    const proxy = new Proxy();
    proxy.server.on('connection', (near) => {
      const far = connect(port, '127.0.0.1');
      const pair = [near, far] as const;
      proxy.pairs.add(pair);
      for (const [from, into] of [pair, [far, near]] as const) {
        from.on('data', (chunk: Buffer) => into.write(chunk));
        from.on('error', () => undefined);
        from.on('close', () => {
          into.destroy();
          proxy.pairs.delete(pair);
        });
      }
    });
    await new Promise<void>((resolve) => {
      proxy.server.listen(0, '127.0.0.1', resolve);
    });
    onCleanup(() => {
      proxy.server.close();
      proxy.cut();
    });
    return proxy;
  }

  url(of: string): string {
    const url = new URL(of);
    url.port = String((this.server.address() as AddressInfo).port);
    return url.href;
  }

  cut(): void {
    for (const [near, far] of this.pairs) {
      near.destroy();
      far.destroy();
    }
  }
}

async function appears(path: string): Promise<void> {
  const watcher = watch(join(path, '..'));
  try {
    while (!existsSync(path)) await once(watcher, 'change');
  } finally {
    watcher.close();
  }
}
