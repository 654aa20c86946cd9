// Agent frameworks of a folder of their own: they are no dependencies of this package.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The folder that has them; undefined unless `npm run test:adapters` has set it. */
export const frameworks = process.env['FRAMEWORKS'];

/** A module of a framework; its types are not part of this package. */
// oxlint-disable-next-line typescript/no-explicit-any
export async function loadFramework(name: string): Promise<any> {
  const { resolve } = createRequire(join(frameworks ?? '', 'package.json'));
  return import(pathToFileURL(resolve(name)).href) as Promise<unknown>;
}
