-- What makes a text an answer: the surface it was given on, and what is to be told of it (RPL-3, ATT-2). JSON.
ALTER TABLE deliveries ADD COLUMN answer TEXT;
