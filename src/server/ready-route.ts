// GET /readyz: an empty answer, without a token and without the keeper. It shows that the server is alive.

import type { Route } from './http/router.ts';

export const readyRoute: Route = {
  method: 'GET',
  path: '/readyz',
  anonymous: true,
  handler: ({ response }) => {
    response.writeHead(200, { 'Content-Length': 0 }).end();
    return Promise.resolve();
  },
};
