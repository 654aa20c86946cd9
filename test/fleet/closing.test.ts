// A gateway and a member end whatever NATS does meanwhile.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FleetPlace } from '../support/fleet-place.ts';
import { hasNats, LEFT_OUT, NatsServer } from '../support/nats.ts';

let place: FleetPlace;
let nats: NatsServer;
beforeEach(async () => {
  place = new FleetPlace();
  nats = await NatsServer.withJetStream();
});
afterEach(async () => {
  await place.close();
  await nats.remove();
});

const archive = (): string[] => ['--archive', `file://${place.folder}/archive`];

describe.skipIf(!hasNats)(`closing${LEFT_OUT}`, () => {
  it('[FL85] a gateway and a member end while NATS hangs', async () => {
    await place.ready('gateway', nats.url, '--name', 'g1', ...archive());
    await place.ready('join', nats.url, '--name', 'h1');
    await place.states({ h1: 'here' });
    nats.signal('SIGSTOP');
    expect(await place.endAll()).toEqual([0, 0]);
  });

  it('[FL85] they end while they dial a NATS that hangs, and while NATS is away', async () => {
    nats.signal('SIGSTOP');
    await place.ready('gateway', nats.url, '--name', 'g1', ...archive());
    await place.ready('join', nats.url, '--name', 'h1');
    expect(await place.endAll()).toEqual([0, 0]);
    await nats.kill();
    await place.ready('gateway', nats.url, '--name', 'g1', ...archive());
    await place.ready('join', nats.url, '--name', 'h1');
    expect(await place.endAll()).toEqual([0, 0]);
  });

  it('[FL85] they end while they dial again', async () => {
    await place.ready('gateway', nats.url, '--name', 'g1', ...archive());
    await place.ready('join', nats.url, '--name', 'h1');
    await place.states({ h1: 'here' });
    nats.signal('SIGSTOP');
    await place.away();
    expect(await place.endAll()).toEqual([0, 0]);
  });
});
