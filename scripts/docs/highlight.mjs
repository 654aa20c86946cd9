// Colours for code blocks: a few kinds of token per language, found while the site is built, so that a page needs no script for it.

export function escapeHtml(text) {
  return text.replace(/[&<>"]/g, (letter) => ENTITIES[letter]);
}

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

const STRING = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/;
const WORDS =
  'as|async|await|break|case|catch|class|const|continue|default|else|export|extends|finally|for|from|function|if|import|in|instanceof|interface|let|new|of|readonly|return|satisfies|static|switch|throw|try|type|typeof|using|while|yield';

/** The kinds of token of each language, as the classes of the style sheet: comment, string, keyword, number. */
const TOKENS = {
  sh: [
    ['c', /(?<=^|\s)#.*/],
    ['s', STRING],
    ['k', /(?<=^|[|;&(]\s*|\s)(?:holdfast|agent-tty)(?=\s|$)/],
    ['n', /(?<=\s)--?[a-z][\w-]*/],
  ],
  ts: [
    ['c', /\/\/.*|\/\*[^]*?\*\//],
    ['s', new RegExp(`${STRING.source}|\`(?:\\\\.|[^\`\\\\])*\``)],
    ['k', new RegExp(`\\b(?:${WORDS})\\b`)],
    ['n', /\b\d[\d_.]*\b|\b(?:true|false|null|undefined)\b/],
  ],
  json: [
    ['k', /"(?:\\.|[^"\\\n])*"(?=\s*:)/],
    ['s', STRING],
    ['n', /-?\b\d[\d.]*\b|\b(?:true|false|null)\b/],
  ],
  toml: [
    ['c', /#.*/],
    ['k', /^\[.*\]|^[\w.-]+(?=\s*=)/],
    ['s', STRING],
    ['n', /\b\d[\d_.]*\b|\b(?:true|false)\b/],
  ],
};
const SAME = {
  bash: 'sh',
  signature: 'ts',
  js: 'ts',
  mjs: 'ts',
  yaml: 'toml',
  ini: 'toml',
  promql: 'json',
};

export function highlight(code, language) {
  if (language === 'console') return highlightSession(code);
  const kinds = TOKENS[SAME[language] ?? language];
  if (!kinds) return escapeHtml(code);
  const pattern = new RegExp(kinds.map(([, { source }]) => `(${source})`).join('|'), 'gm');
  let [html, end] = ['', 0];
  for (const match of code.matchAll(pattern)) {
    const kind = kinds[match.slice(1).findIndex((group) => group !== undefined)][0];
    html += `${escapeHtml(code.slice(end, match.index))}<span class="${kind}">${escapeHtml(match[0])}</span>`;
    end = match.index + match[0].length;
  }
  return html + escapeHtml(code.slice(end));
}

/** What is typed behind "$ " or, as its continuation, "> "; everything else was printed. */
function highlightSession(code) {
  return code
    .split('\n')
    .map((line) => {
      const [, prompt, typed] = /^([$>] )(.*)$/.exec(line) ?? [];
      if (prompt === undefined) return line && `<span class="o">${escapeHtml(line)}</span>`;
      return `<span class="p">${escapeHtml(prompt)}</span>${highlight(typed, 'sh')}`;
    })
    .join('\n');
}
