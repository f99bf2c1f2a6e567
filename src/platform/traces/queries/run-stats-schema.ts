// Statistics of runs as callers read them.
import { z } from '../../../base/schema.ts';

const number = z.number().nullable();
const cost = z.string().nullable();

export const runStats = z
  .strictObject({
    run_count: z.int(),
    latency_p50: number.describe('Seconds, as all times here'),
    latency_p99: number,
    first_token_p50: number,
    first_token_p99: number,
    total_tokens: z.number(),
    prompt_tokens: z.number(),
    completion_tokens: z.number(),
    median_tokens: number,
    tokens_p99: number,
    prompt_tokens_p50: number,
    prompt_tokens_p99: number,
    completion_tokens_p50: number,
    completion_tokens_p99: number,
    total_cost: cost,
    prompt_cost: cost,
    completion_cost: cost,
    cost_p50: cost,
    cost_p99: cost,
    last_run_start_time: z.iso.datetime().nullable(),
    error_rate: number.describe('0 to 1'),
    streaming_rate: number,
  })
  .meta({ id: 'RunStats' });
