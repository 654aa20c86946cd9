// Which paths a sandbox may touch: all that this user may, except Holdfast's own state and the memory of other processes.

import { AccessPolicy } from '../../codex/fs/access-policy.ts';
import type { PathOptions } from '../../codex/fs/opened-path.ts';
import type { Target } from '../target.ts';

const UNCONFINED = { kind: 'none', network: true } as const;

export function pathOptions({ admin }: Target, home: string): PathOptions {
  return { access: new AccessPolicy(admin ? undefined : home, UNCONFINED), follow: true };
}
