// What can stand in `api.operation`: every tracked operation, by its category. Data alone.

/** By category. */
export const operations = ['create_listener', 'update_listener', 'delete_listener'] as const;

export type Operation = (typeof operations)[number];
