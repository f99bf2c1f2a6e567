import { expect, it } from 'vitest';
import { activityOf } from '../../../src/platform/audit/activity.ts';

it.each([
  ['create_listener', 'Create'],
  ['list_org_service_keys', 'Read'],
  ['batch_query_trace_messages', 'Read'],
  ['set_tenant_handle', 'Update'],
  ['bulk_delete_runs', 'Delete'],
  ['login', 'Other'],
  ['generate_dataset', 'Create'],
  ['generate_runs_query', 'Read'],
  ['teleport_dataset', 'Other'],
])('the activity of %s is %s', (operation, name) => expect(activityOf(operation).name).toBe(name));
