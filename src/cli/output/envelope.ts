// The object that `--json` prints, of every command and of `tty`.

/** A failure may still have a result: what was done before it. */
export function envelope(
  command: string,
  { result, error }: { readonly result?: unknown; readonly error?: unknown },
): Record<string, unknown> {
  const head = { ok: error === undefined, command, timestamp: new Date().toISOString() };
  if (error === undefined) return { ...head, result };
  return { ...head, ...(result !== undefined && { result }), error };
}
