// Texts by name, for variables and labels. valibot's own record accepts a list, and drops names that every JavaScript
// object has ("constructor"), which are valid names here.

import * as v from 'valibot';

type Text = v.GenericSchema<string>;
type Issues = [v.BaseIssue<unknown>, ...v.BaseIssue<unknown>[]];

export function textRecord<Name extends Text, Value extends Text>(name: Name, value: Value) {
  const schema = v.record(name, value);
  return {
    ...schema,
    '~run'(dataset, config) {
      const input = dataset.value;
      if (typeof input !== 'object' || input === null || Array.isArray(input)) {
        v._addIssue(schema, 'type', dataset, config);
        return dataset as unknown as v.FailureDataset<v.RecordIssue>;
      }
      for (const [key, text] of Object.entries(input)) {
        const wrong =
          name['~run']({ value: key }, config).issues ??
          value['~run']({ value: text }, config).issues;
        const path = { type: 'object', origin: 'value', input, key, value: text } as const;
        if (wrong)
          return {
            typed: false,
            value: input,
            issues: wrong.map((issue) => ({ ...issue, path: [path] })) as unknown as Issues,
          };
      }
      return { typed: true, value: { ...input } };
    },
  } as typeof schema;
}
