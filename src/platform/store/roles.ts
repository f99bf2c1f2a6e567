// The two roles of the database: who owns the tables, and who works on them.

/** Of a server of our own; of another one, whoever DATABASE_URL or its owner's variable names. */
export const OWNER = 'sallyport';

/** What the platform is at run time: it may do what the migrations grant it and nothing else. */
export const RUNTIME = 'sallyport_app';
