// The two roles of the database.

/** Owns the tables of an embedded server. On an external server, the variables with the URLs name the owner. */
export const OWNER = 'sallyport';

/** The role of the platform at run time: it has the privileges that the migrations grant, and no others. */
export const RUNTIME = 'sallyport_app';
