// Where a compiled file lies. A worker needs JavaScript: seen from src (as in the tests) it is the one the build put
// under dist at the same place, seen from dist it is simply the neighbour.

/** `relative` names the compiled file ("./search-worker.js") as seen from the calling module. */
export function builtFile(importMetaUrl: string, relative: string): URL {
  const url = new URL(relative, importMetaUrl);
  if (!importMetaUrl.endsWith('.ts')) return url;
  const at = url.pathname.lastIndexOf('/src/');
  if (at >= 0)
    url.pathname = `${url.pathname.slice(0, at)}/dist/${url.pathname.slice(at + '/src/'.length)}`;
  return url;
}
