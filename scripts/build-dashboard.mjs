// Builds the dashboard's page: src/dashboard becomes one folder of hashed, packed files that the server reads into memory.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Bundled packages; their licences go with them. */
const BUNDLED = ['preact', '@preact/signals', '@preact/signals-core', '@xterm/xterm'];

export async function buildDashboard(outDir) {
  await build({
    configFile: false,
    root: join(root, 'src', 'dashboard'),
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    // The server puts a fresh nonce in its place.
    html: { cspNonce: 'holdfast-nonce' },
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      modulePreload: { polyfill: false },
      // Nothing becomes a data: address: the policy of the page allows none for fonts and scripts.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      // A busy machine is no fault of the build.
      rolldownOptions: { checks: { bundlerTimings: false } },
    },
  });
  const assets = join(outDir, 'assets');
  writeFileSync(join(assets, 'licences.txt'), licences());
  for (const name of readdirSync(assets)) {
    const file = join(assets, name);
    writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
    rmSync(file);
  }
}

function licences() {
  return BUNDLED.map((name) => {
    const folder = join(root, 'node_modules', name);
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return `${name} ${version}\n\n${readFileSync(join(folder, 'LICENSE'), 'utf8')}`;
  }).join('\n\n');
}
