// The environment that a process is given by whoever asks for it here: the caller's, without what is about the caller
// itself.

export function inheritedEnvironment(env: NodeJS.ProcessEnv, pty = false): Record<string, string> {
  // "_" is this command's own path. A terminal of its own has its own kind and size.
  const aboutUs = pty ? /^(HOLDFAST_.*|_|TERM|COLUMNS|LINES)$/i : /^(HOLDFAST_.*|_)$/i;
  const kept = Object.entries(env).filter(
    ([name, value]) => value !== undefined && !aboutUs.test(name),
  );
  return Object.fromEntries(kept) as Record<string, string>;
}
