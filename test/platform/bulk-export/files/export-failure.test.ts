// Which failures of a run another attempt may change.
import { expect, it } from 'vitest';
import {
  ExportFailure,
  type FailureKind,
} from '../../../../src/platform/bulk-export/files/export-failure.ts';

it.each([
  ['credentials', false],
  ['bucket', false],
  ['permissions', false],
  ['destination', false],
  ['unavailable', true],
  ['serialization', true],
  ['resources', true],
  ['timeout', true],
] as const satisfies readonly (readonly [FailureKind, boolean])[])(
  '%s may be retried: %s',
  (kind, isRetryable) => {
    expect(new ExportFailure(kind, 'what happened')).toMatchObject({ kind, isRetryable });
  },
);
