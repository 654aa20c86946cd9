// The screen of a terminal: watched by default, taken over when a person asks for the keyboard.

import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ProcessInfo } from '../../protocol/process.ts';
import { useKeys } from '../core/keyboard.ts';
import { isDark } from '../core/settings.ts';
import { takesOnArrival } from '../core/take-over.ts';
import { isShare } from '../core/token.ts';
import { bytesText, visibleText } from '../model/words.ts';
import { Dialog } from '../parts/dialog.tsx';
import { useCourse } from './course.ts';
import { KeyBar } from './key-bar.tsx';
import { SaveDialog } from './save.tsx';
import { Runs } from './runs.tsx';
import { Screen } from './screen.ts';
import { TimeLine } from './time-line.tsx';

export function ScreenView({ process }: { readonly process: ProcessInfo }) {
  const { owner, id, outcome } = process;
  const place = useRef<HTMLDivElement>(null);
  const asText = useSignal<string | undefined>(undefined);
  const isSaving = useSignal(false);
  const screen = useMemo(() => new Screen(owner, id, isDark()), [owner, id]);
  const dark = isDark();
  useEffect(() => (place.current ? screen.open(place.current) : undefined), [screen]);
  useEffect(() => screen.setTheme(dark), [screen, dark]);
  useEffect(() => {
    if (takesOnArrival(process)) void screen.hold();
  }, [screen]);
  const held = screen.isHeld.value;
  const course = useCourse(process);
  useKeys([
    ...(outcome || isShare.value
      ? []
      : [{ keys: 't', label: 'take the keyboard', run: () => void screen.hold() }]),
    { keys: 'r', label: 'read as text', run: () => (asText.value = screen.text()) },
    { keys: 'd', label: 'save', run: () => (isSaving.value = true) },
  ]);
  return (
    <div class={held ? 'screen held' : 'screen'}>
      <div class="bar">
        {held ? (
          <>
            <b class="accent">You type.</b>
            <span class="muted">Agents wait until you give the keyboard back.</span>
            <button type="button" onClick={() => void screen.release()}>
              Give back <kbd>Ctrl+]</kbd>
            </button>
          </>
        ) : (
          <>
            <span class="muted">
              {outcome ? 'Its last screen.' : 'Watching: nothing you do here reaches it.'}
            </span>
            {!outcome && !isShare.value && (
              <button type="button" onClick={() => void screen.hold()}>
                Take the keyboard <kbd>t</kbd>
              </button>
            )}
          </>
        )}
        <span class="stretch" />
        {screen.skippedBytes.value > 0 && (
          <span class="warn">{bytesText(screen.skippedBytes.value)} not drawn; see the log</span>
        )}
        {screen.problem.value && (
          <span class="bad" role="alert">
            {screen.problem.value.message}
          </span>
        )}
        <button type="button" class="quiet" onClick={() => (asText.value = screen.text())}>
          Read as text
        </button>
        <button type="button" class="quiet" onClick={() => (isSaving.value = true)}>
          Save …
        </button>
        <span class="muted">
          {screen.size.value.cols} × {screen.size.value.rows}
        </span>
      </div>
      <div class="screen-row">
        <div class="screen-place">
          {!screen.isPainted.value && <p class="screen-wait muted">Its screen is on the way …</p>}
          <div ref={place} class="screen-terminal" />
        </div>
        <Runs course={course} show={(seq) => void screen.showAt(seq)} process={process} />
      </div>
      {held && <KeyBar screen={screen} />}
      <TimeLine course={course} screen={screen} process={process} />
      {screen.heldBy.value !== undefined && <Held screen={screen} />}
      {isSaving.value && (
        <SaveDialog
          process={process}
          at={screen.past.value}
          close={() => (isSaving.value = false)}
        />
      )}
      {asText.value !== undefined && (
        <AsText text={asText.value} close={() => (asText.value = undefined)} />
      )}
    </div>
  );
}

function AsText({ text, close }: { readonly text: string; readonly close: () => void }) {
  return (
    <Dialog title="The screen as text" close={close}>
      <pre class="screen-text" tabIndex={0}>
        {text.split('\n').map(visibleText).join('\n')}
      </pre>
      <p class="actions">
        <button type="button" autoFocus onClick={close}>
          Close
        </button>
      </p>
    </Dialog>
  );
}

function Held({ screen }: { readonly screen: Screen }) {
  const close = (): void => {
    screen.heldBy.value = undefined;
  };
  return (
    <Dialog title="Another person has the keyboard" close={close}>
      <p>{visibleText(screen.heldBy.value ?? '')}</p>
      <p class="actions">
        <button type="button" autoFocus onClick={close}>
          Leave it
        </button>
        <button type="button" class="danger" onClick={() => void screen.hold(true)}>
          Take it from them
        </button>
      </p>
    </Dialog>
  );
}
