// Where codex keeps what is installed and configured: for the user, and for the machine.

import { join } from 'node:path';
import type { CodexSurroundings } from '../rpc.ts';

export const SYSTEM_FOLDER = '/etc/codex';

export function codexHomeOf({
  env,
  userHome,
}: Pick<CodexSurroundings, 'env' | 'userHome'>): string {
  const given = env['CODEX_HOME'];
  return given?.startsWith('/') ? given : join(userHome, '.codex');
}
