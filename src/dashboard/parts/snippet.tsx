// A line to paste somewhere else, with a button that copies it.

import { useState } from 'preact/hooks';

export function Snippet({ text }: { readonly text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => setCopied(true));
  };
  return (
    <div class="snippet">
      <code>{text}</code>
      <button type="button" onClick={copy} aria-label={`Copy ${text}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}
