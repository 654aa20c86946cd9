// Text for a cell of a Markdown table.

/** One line, without ends of cells, and nothing in it becomes markup. */
export function cell(text) {
  return text
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|')
    .replaceAll(/<(?=[a-z!/])/gi, '&lt;');
}
