// The emulator is loaded when the first terminal is opened: most visits need none.

import { useSignal } from '@preact/signals';
import type { FunctionComponent } from 'preact';
import { useEffect } from 'preact/hooks';
import type { ProcessInfo } from '../../protocol/process.ts';

type View = FunctionComponent<{ readonly process: ProcessInfo }>;

export function LazyScreen({ process }: { readonly process: ProcessInfo }) {
  const loaded = useSignal<{ readonly view: View } | undefined>(undefined);
  const failed = useSignal(false);
  useEffect(() => {
    import('../terminal/screen-view.tsx').then(
      ({ ScreenView }) => {
        loaded.value = { view: ScreenView };
      },
      () => {
        failed.value = true;
      },
    );
  }, []);
  if (failed.value)
    return (
      <p class="problem" role="alert">
        The terminal could not be loaded: the server was updated or cannot be reached. Reload the
        page.
      </p>
    );
  if (!loaded.value) return <p class="waiting">Loading the terminal …</p>;
  const { view: Shown } = loaded.value;
  return <Shown process={process} />;
}
