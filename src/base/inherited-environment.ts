// The environments that a process inherits from its caller, and a keeper from the program that starts it.

type Environment = Readonly<Record<string, string | undefined>>;

/** The caller's environment without variables about the caller itself. `pty`: a terminal sets its own type and size. */
export function inheritedEnvironment(env: Environment, pty = false): Record<string, string> {
  // "_" is the path of the caller's own program.
  const aboutCaller = pty ? /^(HOLDFAST_.*|_|TERM|COLUMNS|LINES)$/i : /^(HOLDFAST_.*|_)$/i;
  return filtered(env, (name) => !aboutCaller.test(name));
}

/** npm puts such folders before the PATH of a script. */
const NPM_FOLDER = /\/(node_modules\/\.bin|node-gyp-bin)\/?$/;

/**
 * Removes what npm or a terminal multiplexer added for its own child. Otherwise processes of other callers would get
 * npm's settings, and tools of the project in which the keeper was started.
 */
export function withoutLauncher(env: Environment): Record<string, string> {
  const kept = filtered(env, (name) => !/^(npm_.*|INIT_CWD|TMUX|TMUX_PANE|STY)$/i.test(name));
  const fromNpm = Object.keys(env).some((name) => /^npm_/i.test(name));
  const { PATH: path } = kept;
  if (!fromNpm || path === undefined) return kept;
  const folders = path.split(':').filter((folder) => !NPM_FOLDER.test(folder));
  return { ...kept, PATH: folders.join(':') };
}

function filtered(env: Environment, keep: (name: string) => boolean): Record<string, string> {
  const kept = Object.entries(env).filter(([name, value]) => value !== undefined && keep(name));
  return Object.fromEntries(kept) as Record<string, string>;
}
