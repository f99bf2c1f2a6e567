// The routes of runs: creating, reading, following and cancelling them.
import type { Route } from '../../api/route.ts';
import { createCancelRoutes } from './cancel-routes.ts';
import { createCreationRoutes } from './creation-routes.ts';
import { createFollowingRoutes } from './following-routes.ts';
import { createReadingRoutes } from './reading-routes.ts';
import type { RunRouteParts } from './run-parts.ts';

export function createRunRoutes(parts: RunRouteParts): readonly Route[] {
  return [
    ...createCreationRoutes(parts),
    ...createReadingRoutes(parts),
    ...createFollowingRoutes(parts),
    ...createCancelRoutes(parts),
  ];
}
