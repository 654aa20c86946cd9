// One line about each command. They stand together so that the list of commands loads none of them.

export const summaries = {
  run: 'Start a process, show its output, and exit with its exit code.',
  ps: 'List running processes; with --all exited ones too.',
  inspect: 'Show all details of a process.',
  logs: 'Print the output of a process.',
  wait: 'Wait for an exit, a text, a port or silence. Never ends a process.',
  send: 'Write to the stdin of a process.',
  search: 'Find lines in the output of a process.',
  stop: 'Stop processes and their descendants: SIGTERM, a grace period, then SIGKILL.',
  kill: 'Send a signal to processes and all their descendants.',
  signal: 'Same as "kill".',
  rm: 'Delete exited processes and their output.',
  prune: 'Delete every exited process and its output.',
  export: 'Write the exact output bytes of a process to a file or to stdout.',
  attach: 'Attach your terminal to a running one. Ctrl-] detaches.',
  tty: 'Drive terminals: run commands in a shell, press keys, read the screen.',
  dashboard: 'Open the dashboard in a browser, or print a link that signs one in.',
  serve: 'Serve HTTP on loopback and on a unix socket.',
  'exec-server': 'Serve codex\'s exec-server protocol, in place of "codex exec-server".',
  mcp: 'Serve the tools for models over MCP, on stdin and stdout.',
  token: 'Create, list and revoke tokens: for everything, or for one chat or owner.',
  restart: 'Restart the server with the same options. Processes keep running.',
  status: 'Show whether the keeper and the server are running, and their health.',
  shutdown: 'End every process, the keeper and the server. Output and outcomes stay readable.',
  doctor: 'Check what Holdfast needs on this machine, and report problems.',
  completion: 'Print shell completions for commands, options, names and ids.',
  demo: 'Show a short tour: start, wait, read, and stop a process that ignores SIGTERM.',
  version: 'Print the version.',
  help: 'List the commands, or explain one.',
} as const;

export type CommandName = keyof typeof summaries;
