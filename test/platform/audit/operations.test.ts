import { describe, expect, it } from 'vitest';
import { activityOf } from '../../../src/platform/audit/activity.ts';
import { operations, operationsByCategory } from '../../../src/platform/audit/operations.ts';

/** The activity that a reader would derive from the name of an operation. */
const KINDS: Readonly<Record<number, RegExp>> = {
  1: /^(create|add|invite|clone|mint|register|submit)_|^generate_(dataset|insights_job_config)$/,
  2: /^(batch_)?(read|get|list|query|stream|download|export)_|^generate_(runs|shared_dataset)_query$/,
  3: /^(update|upsert|set|rename|attach|cancel|claim|confirm|populate|resolve|share|unshare|start|stop|sync)_/,
  4: /^(bulk_)?(delete|remove)_/,
  99: /^(evaluate|execute|invalidate|send|test|trigger|validate)_|^login$|^mcp_proxy$/,
};

describe('the tracked operations', () => {
  it('are 279 public ones and nineteen of our own, without duplicates', () => {
    const { listeners, tracingProjectsOfOurs, sandboxTokens, sandboxes, vault } = operationsByCategory;
    const own = [...listeners, ...tracingProjectsOfOurs, ...sandboxTokens, ...sandboxes, ...vault];
    expect(new Set(operations).size).toBe(operations.length);
    expect(operations.length - own.length).toBe(279);
    expect(own).toHaveLength(19);
  });

  it('are in snake case', () => {
    expect(operations.filter((name) => !/^[a-z]+(_[a-z]+)*$/.test(name))).toEqual([]);
  });

  it.each(operations)('%s has exactly one activity', (name) => {
    const kinds = Object.entries(KINDS).filter(([, pattern]) => pattern.test(name));
    expect(kinds.map(([id]) => Number(id))).toEqual([activityOf(name).id]);
  });
});
