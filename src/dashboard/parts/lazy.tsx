// A part of the page that is loaded when it is first shown: most sessions need none of them.

import { useSignal } from '@preact/signals';
import type { FunctionComponent } from 'preact';
import { useEffect } from 'preact/hooks';

interface LazyProps<P extends object> {
  /** What is loaded, in the words of the page. */
  readonly what: string;
  readonly load: () => Promise<FunctionComponent<P>>;
  readonly props: P;
}

export function Lazy<P extends object>({ what, load, props }: LazyProps<P>) {
  const loaded = useSignal<{ readonly view: FunctionComponent<P> } | undefined>(undefined);
  const failed = useSignal(false);
  useEffect(() => {
    load().then(
      (view) => {
        loaded.value = { view };
      },
      () => {
        failed.value = true;
      },
    );
  }, []);
  if (failed.value)
    return (
      <p class="problem" role="alert">
        {what} could not be loaded: the server was updated or cannot be reached. Reload the page.
      </p>
    );
  if (!loaded.value) return <p class="waiting">Loading …</p>;
  const { view: View } = loaded.value;
  return <View {...props} />;
}
