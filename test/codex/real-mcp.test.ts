// The published codex command line as a client of our tools, by the configuration that `holdfast mcp` prints for it.

import { describe, expect, it } from 'vitest';
import { Running } from '../support/command-line.ts';
import { temporaryFolder } from '../support/hosts.ts';
import { homeForStdio } from '../support/mcp-clients.ts';
import { codexCli, runCodex } from '../support/real-codex.ts';
import type { ModelRequest, ScriptedTurn } from '../support/scripted-model.ts';

const TIMEOUT_MS = 60_000;

describe.skipIf(codexCli === undefined)('the real codex client, with our tools', () => {
  it(
    '[CX61] shows its model the picture of a terminal, and the mark of what was left out of a large output',
    async () => {
      const home = homeForStdio();
      const words = ['mcp', '--print-config', 'codex', '--home', home];
      const { stdout: config } = await new Running(words).ended;
      const [large, opened, picture] = await runCodex(
        [
          ours('execute', { command: 'seq 1 200000' }),
          ours('terminal_open', {}),
          (request) => ours('terminal_screenshot', { terminal_id: openedIn(request) }),
        ],
        // codex waits for a server that is required before it asks the model.
        {
          folder: temporaryFolder(),
          env: { HOLDFAST_IDLE: '60s' },
          config: `${config}required = true\n`,
        },
      );
      // In the text, where it was left out, and again where no client cuts.
      expect(large).toMatch(
        /55\\n.*omitted.*199999\\n.*process_output \{.*offset.*fetches the rest/s,
      );
      expect(opened).toContain('terminal_id');
      expect(picture).toContain('data:image/png;base64,iVBOR');
    },
    TIMEOUT_MS,
  );
});

function ours(tool: string, args: unknown) {
  return { namespace: 'mcp__holdfast', tool, args } satisfies ScriptedTurn;
}

/** As the model reads it in what the tool has answered. */
function openedIn({ input }: ModelRequest): string {
  const [, id = ''] = /terminal_id\W+(\w+)/.exec(JSON.stringify(input.at(-1))) ?? [];
  return id;
}
