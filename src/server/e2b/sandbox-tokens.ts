// The access token of a sandbox: its id and an HMAC of the id under a key in the home. Nothing is stored, and signed
// addresses of files can be checked, because the token can be computed again.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { secretIn } from '../http/tokens.ts';

const TOKEN = /^e2bs_(i[0-9a-z]{19})_[0-9a-f]{64}$/;

export class SandboxTokens {
  private readonly home: string;
  private key: string | undefined;

  constructor(home: string) {
    this.home = home;
  }

  tokenOf(sandboxId: string): string {
    this.key ??= secretIn(join(this.home, 'e2b.key'));
    const mac = createHmac('sha256', this.key).update(`sandbox ${sandboxId}`).digest('hex');
    return `e2bs_${sandboxId}_${mac}`;
  }

  /** The sandbox that a token was made for; undefined for any other text. */
  sandboxOf(token: string): string | undefined {
    const [, id] = TOKEN.exec(token) ?? [];
    if (id === undefined) return undefined;
    return timingSafeEqual(Buffer.from(this.tokenOf(id)), Buffer.from(token)) ? id : undefined;
  }
}
