// `/api/v1/audit-logs`: the audit log of the organization, for callers who manage it.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { inOrganization, type OrganizationGrant } from '../api/access.ts';
import { mapList } from '../api/json-text.ts';
import { createCursorQuery } from '../api/paging.ts';
import { type Route, defineRoute } from '../api/route.ts';
import { toOcsfEvent } from '../audit/ocsf-event.ts';
import { ocsfEventSchema } from '../audit/ocsf-schema.ts';
import { operations } from '../audit/operations.ts';
import { type EventQuery, listEvents } from '../audit/query.ts';
import { type EventWindow, settleWindow } from '../audit/window.ts';
import { type EntitlementDefaults, auditLogRefusal } from '../identity/entitlement.ts';

const moment = z.iso.datetime({
  offset: true,
  local: true,
  error: 'Input must be a time like 2030-01-01T00:00:00Z',
});

const query = createCursorQuery(10, 100).extend({
  start_time: moment.optional().meta({ description: 'Inclusive; a day before end_time when absent' }),
  end_time: moment.optional().meta({ description: 'Inclusive; now when absent; at most 10 s ahead' }),
  operations: z.array(z.enum(operations)).max(operations.length).optional(),
  workspace_id: z.guid().optional(),
});

export function createAuditLogRoutes(defaults: EntitlementDefaults): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v1/audit-logs',
      tag: 'Audit logs',
      summary: 'List audit events as OCSF 1.7.0 API Activity, newest first',
      access: inOrganization('organization:manage'),
      tracking: { untracked: 'reading the audit log is not among the tracked operations' },
      query,
      responses: { 200: z.strictObject({ cursor: z.string().nullable(), items: z.array(ocsfEventSchema) }) },
      async prepare(call): Promise<EventWindow> {
        const reason = auditLogRefusal(call.caller.organization, defaults);
        if (reason !== undefined)
          throw new DomainError('forbidden', `Audit logs are not available to this organization: ${reason}`);
        // A cursor contains the window that its first page settled.
        if (call.query.cursor !== undefined) return { start: 0, end: 0 };
        return settleWindow(call.db, toEventQuery(call), call.signal);
      },
      async handle(call, window) {
        const { rows, cursor } = await listEvents(call.db, toEventQuery(call), window);
        return { body: { items: mapList(rows, toOcsfEvent), cursor } };
      },
    }),
  ];
}

function toEventQuery(call: OrganizationGrant & { readonly query: z.output<typeof query> }): EventQuery {
  const { start_time, end_time, workspace_id, ...rest } = call.query;
  return {
    ...rest,
    organizationId: call.organizationId,
    workspaceId: workspace_id?.toLowerCase(),
    startTime: toDate(start_time),
    endTime: toDate(end_time),
  };
}

/** A time without a zone is UTC, whatever the time zone of the platform is. */
function toDate(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  return new Date(/(?:Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text}Z`);
}
