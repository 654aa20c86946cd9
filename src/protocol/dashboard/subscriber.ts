// The name under which dashboards and `holdfast inbox` acknowledge completions, so that all of them show the same.

export const DASHBOARD_SUBSCRIBER = 'dashboard';
