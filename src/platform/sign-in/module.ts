// Sign-in for pages: sessions of browsers that begin with an API key, and the removal of those that have ended.
import type { Module } from '../module.ts';
import { removeOldSessions } from './session-expiry.ts';
import { signInRoutes } from './sign-in-routes.ts';

export const signIn: Module = {
  name: 'sign-in',
  routes: () => signInRoutes,
  jobs: [removeOldSessions],
};
