// Traces: runs that clients send, the projects that they belong to, feedback and attachments.
import type { Module } from '../module.ts';

export const traces: Module = {
  name: 'traces',
  migrations: [new URL('./migrations/0025-traces.sql', import.meta.url)],
};
