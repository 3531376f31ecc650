-- Workers that come over HTTP. Lanes are shared by tenants, so who may fetch work is the operator's to say, queue by
-- queue: a key serves the queues that it names, '*' stands for all of them, and a key of before serves none.
ALTER TABLE api_key ADD COLUMN serves text[];

-- The key that registered a worker: nobody else may speak in its name. Null for one that speaks to the database itself.
ALTER TABLE worker ADD COLUMN key text;
