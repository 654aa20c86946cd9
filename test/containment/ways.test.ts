// Every way to the admin, the keeper or another owner, from commands of a token that is hidden, of another user, or unconfined. What
// leads somewhere is what docs/containment.md says, row by row.

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inNamespace, namespaces, NOBODY } from '../support/namespaces.ts';
import { inProcess, OWNER, temporaryFolder } from '../support/hosts.ts';
import { ways } from './ways.ts';

const isRoot = process.getuid?.() === 0;
const means = await (await inProcess()).enforcement(OWNER, {});
const wraps = means.hidden.by === 'bubblewrap';
const columns = { hidden: 1, 'another user': 2, unconfined: 3 } as const;

/** By the table of the page: its rows, each with a mark for every kind of token. */
function documented(kind: keyof typeof columns): string[] {
  const page = readFileSync(new URL('../../docs/containment.md', import.meta.url), 'utf8');
  const rows = page.split('\n').filter((line) => /^\| .* \| (?:yes|no) \|/.test(line));
  const cells = rows.map((row) =>
    row
      .split('|')
      .map((cell) => cell.trim())
      .slice(1),
  );
  expect(cells.map(([name]) => name)).toEqual(ways.map(([name]) => name));
  return cells.filter((row) => row[columns[kind]] === 'yes').map(([name = '']) => name);
}

/** Names of the ways that led somewhere. */
async function reached(flags: string, user?: number): Promise<string[]> {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const script = join(folder, 'ways.sh');
  const each = ways.map(([, way], at) => `echo "== ${at}"; (${way}) 2>/dev/null`);
  writeFileSync(script, each.join('\n'));
  const text = await inNamespace(
    `
    hf() { "$NODE" "$MAIN" "$@"; }
    pid() { sed -n 's/.*"pid":\\([0-9]*\\).*/\\1/p' "$1"; }
    token=$(hf token create --for alice ${flags}) || exit 1
    hf run --background --owner bob --name other --key k --pty 'echo of bob; exec sleep 1000' > /dev/null
    hf run --owner bob 'echo of bob' > /dev/null
    hf restart > /dev/null
    echo SECRET > $HOLDFAST_HOME/secret
    chmod 600 $HOLDFAST_HOME/secret
    B=$(hf inspect other --owner bob --json | sed -n 's/.*"pid": *\\([0-9]*\\).*/\\1/p' | head -1)
    { echo "hf() { '$NODE' '$MAIN' \\"\\$@\\"; }"
      echo "export H='$HOLDFAST_HOME' K=$(pid $HOLDFAST_HOME/keeper.lock) S=$(pid $HOLDFAST_HOME/server.lock)"
      echo "export B=$B T=$(readlink /proc/$B/fd/0) P=$(sed -n 's/.*127.0.0.1:\\([0-9]*\\).*/\\1/p' $HOLDFAST_HOME/server.lock)"
      cat ${script}
    } > ways.sh
    mkdir work; chmod 777 work
    hf run --owner alice --cwd "$PWD/work" "sh '$PWD/ways.sh'"
    hf ps --owner bob | grep -c running
    hf doctor | grep -cE '^ok .*, pid [0-9]+'
  `,
    user,
  );
  const parts = text.split(/^== /m).slice(1);
  expect([parts.length, text]).toEqual([ways.length, expect.stringMatching(/^1\n2$/m)]);
  const led = parts.filter((part) => /REACHED|SECRET/.test(part));
  return led.map((part) => ways[Number.parseInt(part, 10)]?.[0] ?? part);
}

describe.skipIf(!namespaces)('a command of a scoped token', () => {
  it.skipIf(!wraps)(
    '[CT20] hidden: none of the ways to the admin, the keeper or another owner leads anywhere',
    async () => {
      expect(ways.length).toBeGreaterThanOrEqual(30);
      expect(await reached('')).toEqual(documented('hidden'));
      expect(documented('hidden')).toEqual([]);
    },
  );

  it.skipIf(!isRoot)('[CT25] as another user: what leads somewhere is documented', async () => {
    expect(await reached('--user nobody')).toEqual(documented('another user'));
  });

  it('[CT25] unconfined: what leads somewhere is documented', async () => {
    expect(await reached('--unconfined', isRoot ? NOBODY : undefined)).toEqual(
      documented('unconfined'),
    );
  });
});
