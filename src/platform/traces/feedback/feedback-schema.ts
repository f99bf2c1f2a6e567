// Feedback about runs, traces and projects as callers write and read it, by the public API.
import { isObject } from '../../../base/json/json-document.ts';
import { z } from '../../../base/schema.ts';
import { flag, freeId } from '../projects/project-schema.ts';

const key = z.string().min(1).max(250);
/** Truth values are scores of 1 and 0. */
const score = z.union([z.number(), z.boolean()], 'Input must be a number, true or false').transform(Number);
/** Of each field as JSON: a list of feedback is in memory as a whole. */
const MAX_FIELD_BYTES = 64 * 1024;
const isShort = (given: unknown): boolean => Buffer.byteLength(JSON.stringify(given)) <= MAX_FIELD_BYTES;
const TOO_LONG = `Input must have at most ${MAX_FIELD_BYTES} bytes as JSON`;
const comment = z.string().refine(isShort, TOO_LONG);
const object = z.unknown().refine(isObject, 'Input must be an object').meta({ type: 'object' });
const value = z.union([z.number(), z.boolean(), z.string(), object]).refine(isShort, TOO_LONG);
const correction = z.union([z.string(), object]).refine(isShort, TOO_LONG);
const source = object.refine(isShort, TOO_LONG);

const isAboutSomething = (given: {
  readonly run_id?: unknown;
  readonly trace_id?: unknown;
  readonly session_id?: unknown;
}): boolean => Boolean(given.run_id ?? given.trace_id ?? given.session_id);

/** Without a run it is about the root of the trace, and without a trace about the project. */
export const newFeedback = z
  .object({
    id: freeId.nullish(),
    run_id: freeId.nullish(),
    trace_id: freeId.nullish(),
    session_id: freeId.nullish(),
    key,
    score: score.nullish(),
    value: value.nullish(),
    comment: comment.nullish(),
    correction: correction.nullish(),
    feedback_source: source.nullish(),
  })
  .refine(isAboutSomething, {
    path: ['run_id'],
    message: 'Input must name what the feedback is about: run_id, trace_id or session_id',
  });
export type NewFeedback = z.output<typeof newFeedback>;

/** Fields that are left out are not changed. */
export const feedbackChange = z.object({
  score: score.nullish(),
  value: value.nullish(),
  comment: comment.nullish(),
  correction: correction.nullish(),
});

export const feedback = z
  .strictObject({
    id: z.guid(),
    run_id: z.guid().nullable(),
    trace_id: z.guid().nullable(),
    session_id: z.guid().nullable(),
    key: z.string(),
    score: z.number().nullable(),
    value: z.unknown().describe('A number, a truth value, a text, an object or null'),
    comment: z.string().nullable(),
    correction: z.unknown().describe('A text, an object or null'),
    feedback_source: z.unknown().meta({ type: 'object' }).nullable(),
    created_at: z.iso.datetime(),
    modified_at: z.iso.datetime(),
  })
  .meta({ id: 'Feedback' });

const several = z.array(freeId).max(100).optional();

export const feedbackQuery = z.strictObject({
  run: several,
  session: several,
  key: z.array(z.string().max(250)).max(100).optional(),
  source: z.array(z.string().max(250)).max(100).optional().describe('The types of its sources'),
  level: z.enum(['run', 'session']).optional(),
  has_comment: flag.optional(),
  has_score: flag.optional(),
  offset: z.int().min(0).max(100_000).default(0),
  limit: z.int().min(1).max(100).default(100),
});
