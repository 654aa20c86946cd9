// The first hour of somebody who has just cloned and built this: the samples of the SDK's page,
// an agent, a forwarded port, and the homes that people have: another user's, a long one, one that cannot be written,
// and one whose keeper and server run while the program is updated.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect as connectTcp, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';
import { connect } from '../../src/client/connect.ts';
import { endServer } from '../../src/cli/local/server.ts';
import { main, root, Running, type Ended } from '../support/command-line.ts';
import { failure, onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';

const isRoot = process.getuid?.() === 0;

/** A person with a HOME of their own and nothing else: no variable of ours but how long an idle keeper stays. */
class Person {
  readonly home: string;
  readonly state: string;
  readonly env: NodeJS.ProcessEnv;

  constructor(home = join(temporaryFolder(), 'person')) {
    this.home = home;
    this.state = join(home, '.holdfast');
    mkdirSync(home, { recursive: true });
    const { HOLDFAST_HOME: _home, HOLDFAST_LIMITS: _limits, ...env } = process.env;
    this.env = { ...env, HOME: home, HOLDFAST_IDLE: '60s' };
    onCleanup(async () => {
      await endServer(this.state);
      await stopKeeper(this.state);
    });
  }

  run(...args: string[]): Promise<Ended> {
    return this.start(args).ended;
  }

  start(args: readonly string[], script = main): Running {
    return new Running(args, { env: this.env, cwd: this.home, script });
  }

  async serve(script = main): Promise<{ url: string; token: string }> {
    const server = this.start(
      ['serve', '--json', '--token-file', join(this.home, 'token')],
      script,
    );
    await server.until('stdout', '\n');
    const { url, tokenFile } = JSON.parse(server.text('stdout')) as Record<string, string>;
    return { url: url ?? '', token: readFileSync(tokenFile ?? '', 'utf8').trim() };
  }
}

function blocks(file: string, language: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, code = '']) => code,
  );
}

describe('the samples of the page on the SDK', () => {
  it('[U2] have the types that they seem to have, and do what they say', async () => {
    const person = new Person();
    const { url, token } = await person.serve();
    const folder = join(person.home, 'project');
    const bin = join(person.home, 'bin');
    for (const each of ['app', 'node_modules/@types'])
      mkdirSync(join(folder, each), { recursive: true });
    mkdirSync(bin);
    symlinkSync(root, join(folder, 'node_modules/holdfast'));
    symlinkSync(join(root, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
    const script = (name: string, text: string): void =>
      writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    // Stand-ins: of npm, whose dev server ends when somebody connects, and of git.
    script(
      'npm',
      `case $1 in test) pwd; exit 3 ;; *) exec node ${join(folder, 'dev.cjs')} ;; esac`,
    );
    script('git', 'echo all done');
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(
      join(folder, 'dev.cjs'),
      `const server = require('net').createServer(() => process.exit(0));
      server.listen(0, '127.0.0.1', () => console.log('port', server.address().port));`,
    );
    const [connecting = '', running = '', starting = '', leases = '', terminals = '', ...more] =
      blocks('docs/sdk.md', 'ts');
    // Whole programs, which [SV18] runs.
    expect(more).toHaveLength(2);
    const program = `
      import { connect, embed } from 'holdfast';
      import { writeFile } from 'node:fs/promises';
      const token = ${JSON.stringify(token)};
      ${connecting.replace('https://box.example/holdfast', url)}
      console.log((await remote.run('echo far')).stdout, (await inside.run('echo in')).stdout);
      { ${running} console.log(exitCode, stdout, stderr, sorted.stdout); }
      { ${starting} console.log(typeof port, (await server.waitForExit())?.outcome); }
      { ${leases} await leasing.close(); console.log((await server.status()).state, terminal.id); }
      { ${terminals} console.log(exitCode, output); }
      await Promise.all([holdfast.close(), remote.close(), inside.close()]);`;
    writeFileSync(join(folder, 'samples.ts'), program);
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const options = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node'];
    const compiled = spawnSync(process.execPath, [compiler, ...options, 'samples.ts'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(compiled.stdout).toBe('');
    const path = `${bin}:${process.env['PATH']}`;
    const run = new Running([], {
      script: join(folder, 'samples.js'),
      cwd: folder,
      env: { ...person.env, PATH: path, SHELL: '/bin/bash' },
    });
    await Promise.race([run.until('stdout', 'merged port '), run.ended]);
    const port = Number(/^merged port (\d+)$/m.exec(run.text('stdout'))?.[1]);
    if (port > 0) connectTcp(port, '127.0.0.1').on('error', () => undefined);
    const { code, stdout, stderr } = await run.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('far\n in\n');
    expect(stdout).toContain(`3 ${join(folder, 'app')}\n  1\n2\n3\n`);
    expect(stdout).toContain("number { kind: 'exit', code: 0 }\n");
    expect(stdout).toMatch(/^running \w+$/m);
    expect(stdout).toMatch(/0 all done\n/);
    expect(readFileSync(join(folder, 'screen.png')).subarray(1, 4).toString()).toBe('PNG');
  });
});

describe('an agent', () => {
  it('[U3] gets its tools by the configuration that is printed for it', async () => {
    const person = new Person();
    const { stdout } = await person.run('mcp', '--print-config', 'cursor');
    const { mcpServers } = JSON.parse(stdout) as {
      mcpServers: { holdfast: { command: string; args: string[] } };
    };
    const client = new Client({ name: 'first-hour', version: '1' });
    const env = person.env as Record<string, string>;
    await client.connect(
      new StdioClientTransport({
        ...mcpServers.holdfast,
        env,
        cwd: person.home,
        stderr: 'inherit',
      }),
    );
    onCleanup(() => client.close());
    const ask = (name: string, args: Record<string, unknown>) =>
      client.callTool({ name, arguments: args });
    const call = async (name: string, args: Record<string, unknown>) =>
      (await ask(name, args)).structuredContent as Readonly<Record<string, unknown>>;
    const ran = await call('execute', { command: 'pwd; echo oops >&2; exit 3' });
    expect(ran).toMatchObject({ success: false, exit_code: 3 });
    expect(ran['output']).toContain(person.home);
    const left = await call('execute', { command: 'read _; exit 4', run_in_background: true });
    const id = left['background_process_id'];
    await call('process_write', { process_id: id, text: 'x' });
    const waited = await call('process_wait', { process_ids: [id] });
    expect(JSON.stringify(waited)).toContain('"exit_code":4');
    const opened = await call('terminal_open', {});
    const terminal = { terminal_id: opened['terminal_id'] };
    const typed = await call('terminal_run', { ...terminal, command: 'echo "a!b"' });
    expect(typed).toMatchObject({ success: true });
    const seen = await ask('terminal_screenshot', terminal);
    expect(seen.content).toContainEqual(
      expect.objectContaining({ type: 'image', mimeType: 'image/png' }),
    );
    expect(await call('terminal_close', terminal)).toMatchObject({ success: true });
  });
});

describe('a forwarded port', () => {
  it('[U4] is as good as the real one, whatever its number and the name of the machine’s own side', async () => {
    const person = new Person();
    const { url, token } = await person.serve();
    const forwarder = createServer((near) => {
      const far = connectTcp(Number(new URL(url).port), '127.0.0.1');
      near.pipe(far).pipe(near);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const)
        one.on('error', () => other.destroy()).on('close', () => other.destroy());
      onCleanup(() => void near.destroy());
    }).listen(0, '127.0.0.1');
    await once(forwarder, 'listening');
    onCleanup(() => void forwarder.close());
    const { port } = forwarder.address() as AddressInfo;
    for (const name of ['localhost', '127.0.0.1']) {
      const holdfast = await connect({ url: `http://${name}:${port}`, token });
      expect(await holdfast.run('echo through; exit 3')).toMatchObject({
        exitCode: 3,
        stdout: 'through\n',
      });
      await holdfast.close();
    }
    const docs = await fetch(`http://localhost:${port}/docs`);
    expect(docs.headers.get('content-type')).toContain('text/html');
    await docs.text();
  });
});

describe('homes as people have them', () => {
  it('[U5] a second user is refused the first one’s home by name, and has a home of their own', async (context) => {
    const first = new Person();
    expect((await first.run('run', 'echo private')).stdout).toBe('private\n');
    if (!isRoot) context.skip('only root can become another user');
    const second = new Person();
    const nobody = 65_534;
    const as = (...words: string[]) => {
      const user = [`--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--'];
      const { status, stdout, stderr } = spawnSync('setpriv', [...user, ...words], {
        cwd: '/',
        env: second.env,
        encoding: 'utf8',
      });
      return { status, stdout, stderr };
    };
    // From the folder of the test's people down; what is above belongs to the machine.
    for (const folder of [join(first.home, '..'), join(second.home, '..'), first.home])
      chmodSync(folder, 0o755);
    spawnSync('chown', [`${nobody}:${nobody}`, second.home]);
    const here = as(process.execPath, main, 'version');
    if (here.status !== 0) context.skip('another user cannot read the program here');
    expect(as(process.execPath, main, 'run', 'id -u')).toEqual({
      status: 0,
      stdout: `${nobody}\n`,
      stderr: '',
    });
    for (const [command = '', ...words] of [['run', 'true'], ['ps'], ['logs', 'x'], ['serve']]) {
      const refused = as(process.execPath, main, command, '--home', first.state, ...words);
      expect({ command, ...refused }).toMatchObject({ stdout: '' });
      expect([command, refused.status]).not.toEqual([command, 0]);
      expect(refused.stderr).toContain(first.state);
      expect(refused.stderr).not.toContain('bug in Holdfast');
    }
    expect(as(process.execPath, main, 'shutdown').status).toBe(0);
  });

  it('[U6] a HOME of more than 120 characters has everything: commands, terminals, the SDK', async () => {
    const person = new Person(join(temporaryFolder(), 'x'.repeat(125)));
    expect((await person.run('run', 'echo here')).stdout).toBe('here\n');
    const holdfast = await connect({ env: person.env, home: person.state });
    await using terminal = await holdfast.terminal({ argv: ['sh'] });
    expect((await terminal.run('echo typed; (exit 3)')).exitCode).toBe(3);
    const { stdout } = await person.run('ps', '--json');
    expect(stdout).toContain(terminal.id);
    await holdfast.close();
  });

  it('[U7] a HOME that cannot be written is named, with what to do, at once; another place for the state will do', async (context) => {
    const folder = join(temporaryFolder(), 'read-only');
    mkdirSync(folder);
    // Permissions do not hold back root.
    if (!isRoot) chmodSync(folder, 0o555);
    else if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', folder]).status === 0)
      onCleanup(() => void spawnSync('umount', [folder]));
    else context.skip('root may not mount here');
    const person = new Person(folder);
    const refused = await person.run('run', 'echo never');
    expect(refused).toMatchObject({ code: 125, stdout: '' });
    expect(refused.stderr).toContain(person.state);
    expect(refused.stderr).toContain('HOLDFAST_HOME');
    const problem = await failure(
      connect({ env: person.env, home: person.state, reconnectMs: 600_000 }),
    );
    expect(problem.message).toContain(person.state);
    const state = join(temporaryFolder(), 'elsewhere');
    onCleanup(() => stopKeeper(state));
    const env = { ...person.env, HOLDFAST_HOME: state };
    expect((await new Running(['run', 'echo now'], { env }).ended).stdout).toBe('now\n');
  });

  it('[U8] an update of the program under a running keeper and server disturbs no process and no client', async () => {
    const program = temporaryFolder();
    for (const name of ['fonts', 'package.json'])
      cpSync(join(root, name), join(program, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(program, 'node_modules'));
    const dist = join(program, 'dist');
    cpSync(join(root, 'dist'), dist, { recursive: true });
    const person = new Person();
    const { url, token } = await person.serve(join(dist, 'cli/main.js'));
    const holdfast = await connect({ url, token });
    onCleanup(() => holdfast.close());
    const before = await holdfast.start('echo "line 17"; read _; exit 4', { stdin: 'pipe' });
    // Open while the files go: a wait over HTTP, one of a command, and a reader of the log.
    const waiting = before.waitForExit();
    const command = person.start(['wait', before.id], join(root, 'dist/cli/main.js'));
    const read = (async () => {
      let text = '';
      for await (const { text: more } of before.logs({ follow: true })) text += more;
      return text;
    })();
    while ((await holdfast.health()).parkedWaits < 2);
    renameSync(dist, join(program, 'old'));
    symlinkSync(join(root, 'dist'), dist);
    await before.waitForLog(/line \d+/);
    expect((await before.search(/e 1\d/)).hits).toHaveLength(1);
    await using terminal = await holdfast.terminal({ argv: ['sh'] });
    await terminal.run('echo seen');
    expect(JSON.stringify(await terminal.screen())).toContain('seen');
    expect(
      Buffer.from(await terminal.screenshot())
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
    expect((await holdfast.run('echo after')).stdout).toBe('after\n');
    await before.stdin.end('\n');
    expect((await waiting)?.outcome).toMatchObject({ code: 4 });
    expect(await command.ended).toMatchObject({ code: 4 });
    expect(await read).toBe('line 17\n');
    const newer = person.start(['logs', before.id], join(dist, 'cli/main.js'));
    expect((await newer.ended).stdout).toBe('line 17\n');
  });
});
