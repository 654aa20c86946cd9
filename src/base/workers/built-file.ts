// Finds the compiled file of a worker. From src (as in tests) it is the file at the same place under dist; from dist it is
// the neighbour.

/** `relative` names the compiled file ("./search-worker.js") as seen from the calling module. */
export function builtFile(importMetaUrl: string, relative: string): URL {
  const url = new URL(relative, importMetaUrl);
  if (!importMetaUrl.endsWith('.ts')) return url;
  const at = url.pathname.lastIndexOf('/src/');
  if (at >= 0)
    url.pathname = `${url.pathname.slice(0, at)}/dist/${url.pathname.slice(at + '/src/'.length)}`;
  return url;
}
