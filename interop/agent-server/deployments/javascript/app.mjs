// Routes of the deployment's own.
import { Hono } from 'hono';

export const app = new Hono()
  .get('/own/hello', (c) => c.json({ hello: c.req.query('name') ?? 'world' }))
  .post('/own/echo', async (c) => c.text(await c.req.text(), 201, { 'x-own': 'yes' }));
