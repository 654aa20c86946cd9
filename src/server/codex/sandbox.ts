// The sandbox that a codex client asks for: enforced with bubblewrap where the policy can be expressed, else refused.

/** What runs instead, so that the policy holds. */
export interface SandboxedCommand {
  readonly argv: readonly string[];
  readonly sandboxType: 'none' | 'linuxSeccomp';
}

/** `undefined`: the policy cannot be enforced here, and the start must be refused. */
export async function sandboxed(
  _argv: readonly string[],
  _sandbox: unknown,
): Promise<SandboxedCommand | undefined> {
  return undefined;
}
