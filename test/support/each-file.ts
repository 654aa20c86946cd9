// Runs before every test file. A hook in a module that files import would count for the first of them only: unit tests
// share their modules.

import { afterEach } from 'vitest';
import { cleanUp } from './cleanups.ts';

afterEach(cleanUp);
