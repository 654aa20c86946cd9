// The JSON dialect of the native routes: plain JSON, and errors as rows of the error table.

import { errors, type HoldfastError } from '../../protocol/errors.ts';
import type { Dialect } from './router.ts';

export const plainDialect: Dialect = {
  encode: (value) => `${JSON.stringify(value)}\n`,
  error(error: HoldfastError) {
    const { code, message, details, remedy, retryable } = error;
    const { http } = errors[code];
    const extra = Object.keys(details).length > 0 ? { details } : {};
    return { status: http, body: { error: { code, message, remedy, retryable, ...extra } } };
  },
};
