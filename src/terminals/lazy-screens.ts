// The modules that draw screens, loaded for the first terminal. The server loads them soon after its start, so that a
// new version cannot replace the files before.

export const lazyScreens = {
  screens: () => import('../screen/view/screens.ts'),
  pictures: () => import('../screen/picture/pictures.ts'),
  recordings: () => import('../screen/recording/recordings.ts'),
  asciicast: () => import('../screen/recording/asciicast.ts'),
  repaint: () => import('../screen/view/repaint.ts'),
} as const;
