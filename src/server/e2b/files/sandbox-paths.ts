// Which paths a sandbox may touch: all that this user may, except Holdfast's own state and the memory of other processes, and what
// the token that made the sandbox does not allow.

import type { Clock } from '../../../base/clock.ts';
import { OwnerPolicies } from '../../../host/limits/owner-policies.ts';
import { AccessPolicy } from '../../codex/fs/access-policy.ts';
import type { PathOptions } from '../../codex/fs/opened-path.ts';
import { tokenRules } from '../../codex/fs/token-rules.ts';
import type { Target } from '../target.ts';

const UNCONFINED = { kind: 'none', network: true } as const;

export class SandboxPaths {
  private readonly home: string;
  private readonly policies: OwnerPolicies;

  constructor(home: string, clock: Clock) {
    this.home = home;
    this.policies = new OwnerPolicies(home, () => clock.wallMs());
  }

  async optionsFor({ admin, owner }: Target): Promise<PathOptions> {
    if (admin) return { access: new AccessPolicy(undefined, UNCONFINED), follow: true };
    const ofToken = await tokenRules(this.policies.of(owner));
    return { access: new AccessPolicy(this.home, UNCONFINED, ofToken), follow: true };
  }
}
