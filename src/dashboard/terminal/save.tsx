// Saving what a terminal shows or showed: a picture of the moment, or all of it as a recording.

import { useSignal } from '@preact/signals';
import type { ProcessInfo } from '../../protocol/process.ts';
import { askFile, Problem } from '../core/http.ts';
import { isDark } from '../core/settings.ts';
import { Dialog } from '../parts/dialog.tsx';

interface Props {
  readonly process: ProcessInfo;
  /** The event whose screen is shown; undefined for the present one. */
  readonly at: number | undefined;
  readonly close: () => void;
}

const RECORDINGS: readonly [string, string, string][] = [
  ['Recording (GIF)', 'gif', 'gif'],
  ['Recording (asciicast)', 'asciicast', 'cast'],
];

export function SaveDialog({ process, at, close }: Props) {
  const says = useSignal('');
  const problem = useSignal<Problem | undefined>(undefined);
  const { owner, id, name } = process;
  const path = `/v1/terminals/${encodeURIComponent(id)}`;
  const theme = isDark() ? 'dark' : 'light';
  const save = async (
    what: string,
    query: Readonly<Record<string, string | number | undefined>>,
    extension: string,
  ): Promise<void> => {
    says.value = 'It is being made …';
    problem.value = undefined;
    try {
      const file = await askFile(`${path}/${what}`, { query: { owner, ...query } });
      const title = (name ?? id).replace(/[^\w.-]+/g, '-');
      offer(file, `${title}.${extension}`);
      says.value = 'Saved.';
    } catch (error) {
      says.value = '';
      problem.value = error as Problem;
    }
  };
  return (
    <Dialog title="Save" close={close}>
      <p class="muted">
        {at === undefined ? 'The picture has the screen of now' : `The picture has event ${at}`}; a
        recording has all that was printed, with pauses of two seconds at most.
      </p>
      <p role="status">{says.value}</p>
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value.message} {problem.value.remedy}
        </p>
      )}
      <p class="actions">
        <button
          type="button"
          autoFocus
          onClick={() => void save('screenshot', { at, theme }, 'png')}
        >
          Picture (PNG)
        </button>
        {RECORDINGS.map(([title, format, extension]) => (
          <button
            key={format}
            type="button"
            onClick={() => void save('recording', { format, idleLimitMs: 2000 }, extension)}
          >
            {title}
          </button>
        ))}
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </Dialog>
  );
}

function offer(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
