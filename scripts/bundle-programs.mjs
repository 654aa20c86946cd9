// Bundles the built programs: the command line, agent-tty's, and the keeper.
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build as bundle } from 'rolldown';

/**
 * A program in few files: to find and load a hundred small ones takes longer than most commands run. `always` is what every
 * command needs, `usual` what the usual commands need beside it; all others have parts of their own.
 */
export async function bundlePrograms(folder) {
  const at = (file) => join(folder, file);
  // Not the entry itself: it waits for its command, and a part that needed it would wait for its end.
  const always = ['cli/program.js', 'cli/surroundings.js'];
  const usual = [
    'commands/run',
    'commands/ps',
    'commands/wait',
    'commands/logs',
    '../keeper/connect',
  ].map((file) => join('cli', `${file}.js`));
  for (const { entries, groups, format } of [
    // Node starts a CommonJS program sooner: the loader of ES modules takes a twelfth of the time of `node -e 0`.
    { entries: ['cli/main', 'cli/agent-tty'], groups: { always, usual }, format: 'cjs' },
    { entries: ['keeper/main'], groups: {}, format: 'es' },
  ]) {
    const needed = new Map();
    const grouped = Object.keys(groups).length > 0;
    await bundle({
      input: Object.fromEntries(entries.map((name) => [name, at(`${name}.js`)])),
      platform: 'node',
      external: /^(node:|@?\w)/,
      plugins: [
        ownPlaces(folder, format),
        {
          name: 'needed',
          buildEnd() {
            const add = (file, group) => {
              if (needed.has(file) || file.startsWith('node:')) return;
              needed.set(file, group);
              for (const id of this.getModuleInfo(file)?.importedIds ?? []) add(id, group);
            };
            for (const [group, files] of Object.entries(groups))
              for (const file of files) add(at(file), group);
          },
        },
      ],
      output: {
        dir: folder,
        format,
        dynamicImportInCjs: true,
        sourcemap: true,
        entryFileNames: '[name].js',
        chunkFileNames: `${dirname(entries[0])}-parts/[name].js`,
        ...(grouped && {
          codeSplitting: {
            includeDependenciesRecursively: false,
            groups: Object.keys(groups).map((name) => ({
              name,
              test: (id) => needed.get(id) === name,
            })),
          },
        }),
      },
      ...(grouped && { preserveEntrySignatures: false }),
      // A command that lists all of them needs the table that has loaded it.
      checks: { ineffectiveDynamicImport: false },
      logLevel: 'warn',
    });
  }
  leaveCommonJs(at('cli'), at('cli-parts'));
}

/** The package is of ES modules. Of `cli`, which nothing imports, only the programs stay. */
function leaveCommonJs(cli, parts) {
  const programs = /^(main|agent-tty)\./;
  for (const name of readdirSync(cli))
    if (!programs.test(name)) rmSync(join(cli, name), { recursive: true });
  for (const folder of [cli, parts])
    writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }\n');
}

/** In a part, a module still finds what lies beside its own file. Every part is one folder below the build. */
function ownPlaces(folder, format) {
  return {
    name: 'own-places',
    transform(code, id) {
      if (!code.includes('import.meta.url')) return undefined;
      const place = JSON.stringify(`../${relative(folder, id)}`);
      const here =
        format === 'cjs' ? "require('node:url').pathToFileURL(__filename)" : 'import.meta.url';
      const own = `new URL(${place}, ${here}).href`;
      return { code: code.replaceAll('import.meta.url', own), map: null };
    },
  };
}
