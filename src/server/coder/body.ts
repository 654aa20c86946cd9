// Parses the bodies of coder's requests as leniently as coder's own server, with the same error texts.

import { HoldfastError, type ErrorCode } from '../../protocol/errors.ts';
import { decodeFirstValue, field, quoteGo } from '../../protocol/rendering/go-json.ts';

/** An error in coder's own words; logs and metrics use the code of our error table. */
export class CoderError extends HoldfastError {
  readonly status: number;
  readonly answer: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    message: string,
    more: Record<string, unknown> = {},
    code: ErrorCode = status === 404
      ? 'not_found'
      : status === 409
        ? 'not_running'
        : 'invalid_input',
  ) {
    super(code, message);
    this.status = status;
    this.answer = { message, ...more };
  }
}

export function decode(body: Buffer): unknown {
  try {
    return decodeFirstValue(body.toString('utf8'));
  } catch (error) {
    // Without the part of the body that V8 quotes: it may contain a secret.
    const detail = (error as Error).message.replace(/, (?:\.\.\.)?".*$/s, '');
    throw new CoderError(400, 'Request body must be valid JSON.', { detail });
  }
}

function wrongType(name: string, value: unknown): CoderError {
  const detail = `json: cannot unmarshal ${typeof value} into field ${name}`;
  return new CoderError(400, 'Request body must be valid JSON.', { detail });
}

export function text(body: unknown, name: string): string {
  if (body !== null && (typeof body !== 'object' || Array.isArray(body)))
    throw wrongType(name, body);
  const value = field(body, name) ?? '';
  if (typeof value !== 'string') throw wrongType(name, value);
  return value;
}

export function flag(body: unknown, name: string): boolean {
  const value = field(body, name) ?? false;
  if (typeof value !== 'boolean') throw wrongType(name, value);
  return value;
}

export function variables(body: unknown): Record<string, string> {
  const value = field(body, 'env') ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw wrongType('env', value);
  const entries = Object.entries(value as Record<string, unknown>).map(
    ([name, item]): [string, string] => {
      if (item !== null && typeof item !== 'string') throw wrongType(`env.${name}`, item);
      return [name, item ?? ''];
    },
  );
  return Object.fromEntries(entries);
}

/** coder's two signals, and `interrupt`. */
export const SIGNALS = { kill: 'SIGKILL', terminate: 'SIGTERM', interrupt: 'SIGINT' } as const;

export function signalName(body: unknown): keyof typeof SIGNALS {
  const name = text(body, 'signal');
  if (name === '') throw new CoderError(400, 'Signal is required.');
  if (Object.hasOwn(SIGNALS, name)) return name as keyof typeof SIGNALS;
  throw new CoderError(400, `Unsupported signal ${quoteGo(name)}. Use "kill" or "terminate".`);
}
