// The part of an AbortSignal that our own code needs. An AbortSignal satisfies it, and so does the lighter `Cancellation`.

export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}
