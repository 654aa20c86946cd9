// Explains what is wrong with an input. It does not repeat the value, which may be a secret in the wrong field.

import type * as v from 'valibot';

const kinds: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  Array: 'a list',
  Object: 'an object',
};

export function inputProblem(issue: v.BaseIssue<unknown>): string {
  const { kind, type, requirement, input, message } = issue;
  const unit = typeof input === 'string' ? 'characters' : 'entries';
  switch (type) {
    case 'integer':
      return 'must be a whole number';
    case 'min_value':
      return `must be ${String(requirement)} or more`;
    case 'max_value':
      return `must be ${String(requirement)} or less`;
    case 'min_length':
      return `must have ${String(requirement)} or more ${unit}`;
    case 'max_length':
      return `must have ${String(requirement)} or fewer ${unit}`;
    case 'base64':
      return 'must be base64';
    default:
      // Checks and custom schemas have messages of their own.
      return kind === 'schema' && type !== 'custom' ? wanted(issue) : message;
  }
}

function wanted({ type, expected, input }: v.BaseIssue<unknown>): string {
  if (input === undefined) return 'is missing';
  if (expected === 'never') return 'is not known here';
  const choices = expected?.replace(/^\(|\)$/g, '').split(' | ') ?? [];
  if (choices.length > 1 || type === 'literal') return `must be ${listed(choices)}`;
  return `must be ${kinds[expected ?? ''] ?? expected}`;
}

function listed(choices: readonly string[]): string {
  const last = choices.at(-1) ?? '';
  return choices.length > 1 ? `${choices.slice(0, -1).join(', ')} or ${last}` : last;
}
